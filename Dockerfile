# The image of sbx: one static program and what it reads, without a shell. It works with a read-only root;
# mount a volume at /var/lib/sbx to keep the records of what was ended (docs/INSTALL.md).
# PROGRAM says where the program is from: `build` makes it of this folder, `released` is what goreleaser has built.
ARG PROGRAM=build

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# With .git, from which the version is read. No other network than that of the modules is used.
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=true -ldflags '-s -w' -o /sbx ./cmd/sbx && scripts/image /sbx /image

FROM golang:1.26 AS released
ARG TARGETPLATFORM
COPY scripts/image /make
COPY $TARGETPLATFORM/bin/sbx /sbx
RUN /make /sbx /image

FROM ${PROGRAM} AS program

FROM scratch
COPY --from=program /image /
# As a new volume is made: sbx refuses a state directory that is not its user's, or root's.
COPY --from=program --chown=65532:65532 /image/var/lib/sbx /var/lib/sbx
ENV SBX_STATE_DIR=/var/lib/sbx XDG_CONFIG_HOME=/etc
USER 65532:65532
ENTRYPOINT ["/sbx"]
