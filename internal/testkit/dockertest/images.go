package dockertest

import (
	"maps"
	"slices"
)

// Commit makes an image of a container, as `docker commit` does: it keeps the labels.
func (f *Fake) Commit(id, image string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.images == nil {
		f.images = map[string]map[string]string{}
	}
	f.images[image], f.pulled = maps.Clone(f.find(id).labels), append(f.pulled, image)
}

// Forget removes an image that containers are made of. The lock is not held.
func (f *Fake) Forget(image string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulled = slices.DeleteFunc(f.pulled, func(name string) bool { return name == image })
	delete(f.images, image)
}

// inherit are the labels of a new container of an image. The lock is held.
func (f *Fake) inherit(image string, labels map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, f.images[image])
	maps.Copy(all, labels)
	return all
}
