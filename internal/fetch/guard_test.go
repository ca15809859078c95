package fetch

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace"
)

func TestGuardCheck(t *testing.T) {
	for addr, class := range map[string]string{
		"127.0.0.1:80":                  "loopback",
		"127.255.0.9:8080":              "loopback",
		"[::1]:443":                     "loopback",
		"[::ffff:127.0.0.1]:80":         "loopback",
		"0.0.0.0:80":                    "unspecified",
		"[::]:80":                       "unspecified",
		"0.1.2.3:80":                    "special",
		"10.1.2.3:80":                   "private",
		"172.31.0.1:80":                 "private",
		"192.168.1.1:80":                "private",
		"[::ffff:10.0.0.1]:80":          "private",
		"[fd00:ec2::254]:80":            "metadata",
		"169.254.169.254:80":            "metadata",
		"[::ffff:169.254.169.254]:80":   "metadata",
		"168.63.129.16:80":              "metadata",
		"169.254.1.1:80":                "link-local",
		"[fe80::1%eth0]:80":             "link-local",
		"100.100.100.200:80":            "metadata",
		"192.0.0.192:80":                "metadata",
		"[64:ff9b::a9fe:a9fe]:80":       "NAT64",
		"[64:ff9b::8.8.8.8]:80":         "NAT64",
		"[2002:7f00:1::]:80":            "special", // 6to4
		"[2001:0:7f00:1::]:80":          "special", // Teredo
		"224.0.0.1:80":                  "multicast",
		"[ff02::1]:80":                  "multicast",
		"255.255.255.255:80":            "special",
		"8.8.8.8:80":                    "",
		"8.8.8.8:22":                    "", // any port
		"1.1.1.1:65535":                 "",
		"[2606:4700:4700::1111]:8443":   "",
		"[::ffff:8.8.8.8]:80":           "",
		"172.32.0.1:80":                 "",
		"[2a00:1450:4001:80b::200e]:80": "",
	} {
		err := newGuard(false).check(addr)
		refused, ok := errors.AsType[*AddressError](err)
		if class == "" {
			if err != nil {
				t.Errorf("%s: %v", addr, err)
			}
			continue
		}
		if !ok || refused.Class != class || !errors.Is(err, millrace.ErrForbidden) {
			t.Errorf("%s: %v, want %s", addr, err, class)
		}
	}
	for _, bad := range []string{"", "example.com:80", "127.0.0.1", "127.1:80"} {
		if err := newGuard(false).check(bad); !errors.Is(err, millrace.ErrForbidden) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestGuardAllowsPrivate lists the addresses that AllowPrivate allows, and those that are
// always refused.
func TestGuardAllowsPrivate(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "10.1.2.3:80": true, "192.168.1.1:80": true, "[fd00::1]:80": true,
		"100.64.0.1:80": true, "0.0.0.0:80": true, "8.8.8.8:80": true, "[64:ff9b::8.8.8.8]:80": true,
		"169.254.169.254:80": false, "[::ffff:169.254.169.254]:80": false, "[64:ff9b::a9fe:a9fe]:80": false,
		"169.254.1.1:80": false, "[fe80::1%eth0]:80": false, "168.63.129.16:80": false, "[fd00:ec2::254]:80": false,
		"100.100.100.200:80": false, "224.0.0.1:80": false,
		"[fd00:ec2::254%eth0]:80": false, "[64:ff9b::a9fe:a9fe%eth0]:80": false, "[fd00::1%eth0]:80": true,
	} {
		err := newGuard(true).check(addr)
		if want && err != nil || !want && !errors.Is(err, millrace.ErrForbidden) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// A client connects to the first address of Resolve that accepts. Each address is checked.
func TestResolve(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host)) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	busy := millrace.Coded("busy", millrace.ErrConflict)
	for _, tt := range []struct {
		addrs []string // "busy" = an error
		code  string   // of the error of the request; "" = none
	}{
		{[]string{"127.0.0.1"}, ""},
		{[]string{"127.0.0.2", "127.0.0.1", "busy"}, ""},
		{[]string{"169.254.169.254", "127.0.0.1"}, ""},
		{[]string{"169.254.169.254"}, "address-metadata"},
		{[]string{"127.0.0.2", "busy", "127.0.0.1"}, "connection-refused"},
		{[]string{"busy", "127.0.0.1"}, "busy"},
		{nil, "dns-unknown"},
	} {
		c := New(&Options{AllowPrivate: true, IgnoreRobots: true, Delay: -1, Resolve: func(_ context.Context, host string) iter.Seq2[netip.Addr, error] {
			return func(yield func(netip.Addr, error) bool) {
				if host != "site.example" {
					t.Errorf("resolve %q", host)
				}
				for _, a := range tt.addrs {
					if a == "busy" {
						yield(netip.Addr{}, busy)
						return
					}
					if !yield(netip.MustParseAddr(a), nil) {
						return
					}
				}
			}
		}})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://site.example:"+port+"/", nil)
		resp, err := c.HTTP().Do(req)
		if got := millrace.ErrorCode(err); got != tt.code || got == "busy" && errors.Is(err, millrace.ErrUnavailable) {
			t.Errorf("%q: %q, %v", tt.addrs, got, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		c.CloseIdleConnections()
	}
}

// TestGuardRefusesConnections uses the real network up to the connection attempt.
func TestGuardRefusesConnections(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	c := newClient(t, Options{})
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		_, err := Do(t.Context(), c.HTTP(), get(t, "http://"+host+":"+port+"/"))
		refused, ok := errors.AsType[*AddressError](err)
		if !ok {
			t.Errorf("%s: %v", host, err)
			continue
		}
		wantErr(t, err, millrace.ErrForbidden, "address-"+refused.Class)
	}
	if hits.Load() != 0 {
		t.Errorf("the server got %d requests", hits.Load())
	}
	if s := c.Stats(); s.Failed != 5 || s.Requests != 0 || s.Retries != 0 {
		t.Errorf("stats %+v", s)
	}
	if body, err := fetchBody(t, newClient(t, Options{AllowPrivate: true}), srv.URL); err != nil || body != "" || hits.Load() != 1 {
		t.Errorf("allowed: %q, %v", body, err)
	}
}

// TestGuardAfterDNS resolves one public name to a private address, and another one to no address.
func TestGuardAfterDNS(t *testing.T) {
	dns := fakeDNS(t, netip.MustParseAddr("10.0.0.7"))
	c := newClient(t, Options{})
	c.transport.DialContext = guardedDial(false, dns)
	_, err := Do(t.Context(), c.HTTP(), get(t, "http://rebound.example/"))
	wantErr(t, err, millrace.ErrForbidden, "address-private")

	c.transport.DialContext = guardedDial(false, &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("dns")
	}})
	_, err = Do(t.Context(), c.HTTP(), get(t, "http://nowhere.example/"))
	wantErr(t, err, millrace.ErrUnavailable, "dns")
}

// fakeDNS resolves every name to ip, over a loopback socket.
func fakeDNS(t *testing.T, ip netip.Addr) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			name := 12
			for name < n && buf[name] != 0 {
				name += int(buf[name]) + 1
			}
			question := buf[12 : name+5]
			isA := question[len(question)-3] == 1
			answer := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			if isA {
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, ip.AsSlice()...)
			}
			_, _ = pc.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func TestGuardHook(t *testing.T) {
	dial := memory(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "site.example" && r.URL.Path == "/away" {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("here"))
	})
	c := newClient(t, Options{Dial: dial})
	if body, err := fetchBody(t, c, "http://site.example/"); err != nil || body != "here" {
		t.Errorf("%q, %v", body, err)
	}
	_, err := fetchBody(t, c, "http://site.example/away")
	wantErr(t, err, millrace.ErrForbidden, "address-metadata")
	if body, err := fetchBody(t, newClient(t, Options{Dial: dial, AllowPrivate: true}), "http://10.0.0.1/"); err != nil || body != "here" {
		t.Errorf("%q, %v", body, err)
	}

	// A Dial that connects to the real loopback is refused by the remote address.
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	c = newClient(t, Options{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
	}})
	_, err = fetchBody(t, c, "http://site.example/")
	wantErr(t, err, millrace.ErrForbidden, "address-loopback")
}

// TestGuardWhenDNSFlips uses a name that resolves to a public address for robots.txt and the first
// page, and to loopback afterwards.
func TestGuardWhenDNSFlips(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer inside.Close()
	outside := memory(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
		}
	})
	var dials atomic.Int64
	c := obedient(t, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) <= 2 {
			return outside(ctx, network, addr)
		}
		return new(net.Dialer).DialContext(ctx, network, inside.Listener.Addr().String())
	}})
	if _, err := fetchBody(t, c, "http://site.example/1"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := fetchBody(t, c, "http://site.example/2")
		wantErr(t, err, millrace.ErrForbidden, "address-loopback")
	}
	if dials.Load() != 5 {
		t.Errorf("%d connections", dials.Load())
	}

	// The guard also works with the system's dialer. The refused robots.txt does not hide the
	// reason.
	c = obedient(t, Options{})
	ip := netip.MustParseAddr("127.0.0.1")
	c.transport.DialContext = guardedDial(false, fakeDNS(t, ip))
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	_, err := fetchBody(t, c, "http://rebound.example:"+port+"/")
	wantErr(t, err, millrace.ErrForbidden, "address-loopback")
	if _, ok := errors.AsType[*AddressError](err); !ok {
		t.Errorf("%T", err)
	}
}

func TestCheckURL(t *testing.T) {
	c := newClient(t, Options{Dial: raw(t, func(net.Conn, *http.Request) { t.Error("connected") })})
	for url, text := range map[string]string{
		"ftp://site.example/":                    "bad-scheme",
		"file:///etc/passwd":                     "bad-scheme",
		"http:///path":                           "bad-url",
		"http://hidden:secret@site.example/?q#f": "url-credentials",
		"http://hidden@site.example/":            "url-credentials",
	} {
		_, err := Do(t.Context(), c.HTTP(), get(t, url))
		wantErr(t, err, millrace.ErrInvalid, text)
		resp, err := c.RoundTrip(get(t, url))
		wantErr(t, err, millrace.ErrInvalid, text)
		if resp != nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, %v", url, resp, err)
		}
	}
	if s := c.Stats(); s.Requests != 0 {
		t.Errorf("stats %+v", s)
	}
}
