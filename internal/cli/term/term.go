// Package term holds what a command reads from and writes to, and what that
// terminal can show. It knows no command and no data.
package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are a command's three streams and what the output can show.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Color: Out is a terminal and the user has not said NO_COLOR.
	Color bool
	// Width of the terminal behind Out in columns; 0 when it is not a terminal
	// and lines may be of any length.
	Width int
	// Asks: In is a terminal, with somebody behind it who can be asked.
	Asks bool
}

// System returns the process's own streams.
func System() *Streams {
	s := &Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	s.Asks = term.IsTerminal(int(os.Stdin.Fd()))
	fd := int(os.Stdout.Fd())
	if term.IsTerminal(fd) {
		s.terminal(os.Getenv, func() (width, height int, err error) { return term.GetSize(fd) })
		s.Color = s.Color && readsEscapes(fd)
	}
	return s
}

// terminal notes what the terminal behind Out can show.
func (s *Streams) terminal(getenv func(string) string, size func() (width, height int, err error)) {
	// no-color.org: any non-empty value. A dumb terminal shows escapes as text.
	s.Color = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	if w, _, err := size(); err == nil {
		s.Width = w
	}
}

// Style is a colour by meaning.
type Style string

// The styles, as ANSI SGR parameters.
const (
	Plain Style = ""
	Bold  Style = "1"
	Dim   Style = "2"
	Good  Style = "32" // green: done or running
	Busy  Style = "36" // cyan: on its way
	Wait  Style = "33" // yellow: waiting, worth a look
	Bad   Style = "31" // red: failed
)

// Paint wraps text in the style if the terminal shows colours.
func (s *Streams) Paint(style Style, text string) string {
	if !s.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
