// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// network is the network namespace of a process.
type network struct{ pid int }

// within calls f on a thread that is in the namespace. Sockets that f makes stay there.
func (n network) within(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		left, err := n.enter(f)
		if left {
			runtime.UnlockOSThread()
		}
		// Or else the thread ends with the goroutine, and is of no use to others.
		result <- err
	}()
	return <-result
}

// enter tells whether the thread has left the namespace again.
func (n network) enter(f func() error) (left bool, err error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return true, err
	}
	defer own.Close()
	other, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.pid))
	if err != nil {
		return true, fmt.Errorf("enter the network of process %d: %w", n.pid, err)
	}
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return true, fmt.Errorf("enter the network of process %d: %w", n.pid, err)
	}
	err = f()
	return unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil, err
}

// up turns the loopback interface on, and gives it the address of a pod: who listens on
// 127.0.0.1 only is not reached there, as in a cluster.
func (n network) up(address string) error {
	return n.within(func() error {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		loopback, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback); err != nil {
			return fmt.Errorf("turn on the loopback interface: %w", err)
		}
		alias, err := unix.NewIfreq("lo:0")
		if err != nil {
			return err
		}
		for _, set := range []struct {
			request uint
			address net.IP
		}{{unix.SIOCSIFADDR, net.ParseIP(address)}, {unix.SIOCSIFNETMASK, net.IPv4(255, 255, 255, 255)}} {
			if err := alias.SetInet4Addr(set.address.To4()); err != nil {
				return fmt.Errorf("address %s: %w", address, err)
			}
			if err := unix.IoctlIfreq(socket, set.request, alias); err != nil {
				return fmt.Errorf("give the loopback interface the address %s: %w", address, err)
			}
		}
		return nil
	})
}

func (n network) dial(ctx context.Context, address string) (connection net.Conn, err error) {
	err = n.within(func() (err error) {
		connection, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return err
	})
	return connection, err
}

func (n network) listen(address string) (listener net.Listener, err error) {
	err = n.within(func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	return listener, err
}

// forward passes the connections that a listener accepts on, until it is closed; done waits for
// them to end.
func forward(ctx context.Context, listener net.Listener, done *sync.WaitGroup, dial func(context.Context) (net.Conn, error)) {
	ctx, cancel := context.WithCancel(ctx)
	done.Go(func() {
		defer cancel()
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer accepted.Close()
				if dialed, err := dial(ctx); err == nil {
					defer dialed.Close()
					pass(ctx, accepted, dialed)
				}
			})
		}
	})
}

// pass copies in both directions until both ended, or the context.
func pass(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(a.Close(), b.Close()) })
	defer stop()
	var both sync.WaitGroup
	for _, way := range []struct{ to, from net.Conn }{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way.to, way.from)
			if half, ok := way.to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
}
