// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	probePeriod = 50 * time.Millisecond

	// failureLines is the maximum number of lines of a log in an error. failureBytes is the maximum number of bytes.
	failureLines = 20
	failureBytes = 16 << 10
)

// waitReady returns when probe succeeds. It fails when the process ends, when the context ends, or after the timeout.
func (p *Process) waitReady(caller context.Context, timeout time.Duration, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(caller, timeout, fmt.Errorf("timeout of %s", timeout))
	defer cancel()
	ticker := time.NewTicker(probePeriod)
	defer ticker.Stop()
	for {
		unready := probe(ctx)
		select {
		case <-p.done:
			// Check this even if the probe succeeded: another process may have answered on the port.
			return p.endedEarly()
		default:
		}
		if unready == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.endedEarly()
		case <-ctx.Done():
			if caller.Err() != nil { // the log would not explain the caller's cancellation
				return fmt.Errorf("%s is not ready yet: %w", p.command.name, context.Cause(caller))
			}
			return p.failure("did not get ready", fmt.Errorf("%w; last answer: %w", context.Cause(ctx), unready))
		case <-ticker.C:
		}
	}
}

func (p *Process) endedEarly() error {
	if p.err == nil {
		return fmt.Errorf("%s was stopped before it was ready", p.command.name)
	}
	return fmt.Errorf("not ready yet: %w", p.err)
}

// probePath returns a probe that succeeds when a GET request for the path returns 200.
func (p *Process) probePath(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := p.Get(ctx, path)
		return err
	}
}

// failure returns an error that says what happened to the process, and contains the end of its log.
func (p *Process) failure(what string, cause error) error {
	tail, err := lastLines(p.command.logFile, failureLines)
	if err != nil {
		tail = err.Error()
	}
	return fmt.Errorf("%s %s: %w\nlast lines of %s:\n%s", p.command.name, what, cause, p.command.logFile, tail)
}

// lastLines returns up to n lines from the end of a file, within its last failureBytes bytes.
func lastLines(path string, n int) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	start := max(0, info.Size()-failureBytes)
	content, err := io.ReadAll(io.NewSectionReader(file, start, failureBytes))
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-n):]
	return string(bytes.Join(lines, []byte("\n"))), nil
}
