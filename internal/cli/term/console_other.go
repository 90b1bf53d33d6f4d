//go:build !windows

package term

// readsEscapes: terminals do; one that does not says so by TERM.
func readsEscapes(int) bool { return true }
