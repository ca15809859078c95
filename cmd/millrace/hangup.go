package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups gives the signals SIGHUP. One that says that the terminal is gone in
// which a person has started the server is the last: it ends the process, as ever.
func hangups() (signals <-chan os.Signal, stop func()) {
	watched := !signal.Ignored(syscall.SIGHUP) && atTerminal() // nohup has it ignored
	c, out, stopped := make(chan os.Signal, 1), make(chan os.Signal), make(chan struct{})
	signal.Notify(c, syscall.SIGHUP)
	go func() {
		defer close(out)
		for {
			select {
			case <-stopped:
				return
			case s := <-c:
				if watched && !atTerminal() {
					return
				}
				select {
				case out <- s:
				case <-stopped:
					return
				}
			}
		}
	}()
	return out, func() {
		signal.Stop(c)
		close(stopped)
	}
}

// atTerminal reports whether the process has a terminal that it belongs to.
func atTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = f.Close() // it was only looked for
	return true
}
