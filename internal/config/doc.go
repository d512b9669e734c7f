// Package config turns flags, environment, one file and defaults into one checked
// value in which every setting knows where it came from.
//
// Files are decoded strictly by YAML nodes, so that each mistake has a line and
// a column; viper decides the precedence of scalars and nothing else: it reads
// no file, no environment and no flag. No file of the working directory is read: a
// repository has no say in what ends.
//
// No provider's protocol, no command, no output and no ambient state enters
// this room: the process value and the provider types are handed in.
package config
