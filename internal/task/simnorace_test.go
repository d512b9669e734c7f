//go:build !race

package task_test

const seedsOfATest = 500
