package daemon

import (
	"os"
	"os/signal"
	"syscall"
)

// Hangups delivers SIGHUP until stop is called. If the terminal of the process has closed, a
// SIGHUP closes the channel instead, and the process should end.
func Hangups() (signals <-chan os.Signal, stop func()) {
	watched := !signal.Ignored(syscall.SIGHUP) && atTerminal() // nohup ignores the signal
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

// atTerminal reports whether the process has a controlling terminal.
func atTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = f.Close() // opened only as a test
	return true
}
