// Package process runs the sandbox's child processes so that none of them
// outlives its parent: each is the head of a process group of its own, dies
// with the parent where the kernel can promise it, and is recorded on disk with
// its start time, so that the next start can end what a killed parent left. It
// knows nothing of Kubernetes.
package process
