package training

// processCommand is how a container starts the program: argv as it is, or a
// script by the image's shell.
func processCommand(shell string, command, args []string) (argv, rest []string) {
	if shell == "" {
		return command, args
	}
	return []string{"/bin/sh", "-c", shell}, nil
}
