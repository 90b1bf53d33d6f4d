// Package chaos proves that nothing is lost: it runs the built provider under a
// real command line, ends it at every single call that it sends, lets the next
// apply go on, and compares what then exists with what the configuration says
// and with what Terraform's state knows. The same with Ctrl-C, with two applies
// at once, and with a share of all calls going wrong.
//
// It is driven by its tests: a sample of the cells by default, all of them with
// -chaos.full (make soak). With a real control plane, where a cell takes ten
// seconds or a minute, a full run too is a sample, in which each call that
// changes something comes first (-chaos.kube=1 is all).
package chaos
