// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/placement/controller"
)

// startController runs the controller until it is stopped. The context it returns
// ends, with the reason as its cause, when the controller does.
func (d *demo) startController(ctx context.Context) (context.Context, func() error, error) {
	mgr, err := manager.New(d.Controller, manager.Options{
		Scheme: d.client.Scheme(), Cache: controller.Cache(), Logger: d.logger,
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, nil, err
	}
	// A process may show the demo more than once.
	if err := controller.Add(mgr, controller.Options{SkipNameValidation: true}); err != nil {
		return nil, nil, err
	}
	running, end := context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		err := mgr.Start(running)
		end(fmt.Errorf("the controller ended: %w", err))
		done <- err
	}()
	stop := func() error {
		end(errors.New("the demo is over"))
		return <-done
	}
	if !mgr.GetCache().WaitForCacheSync(running) {
		return nil, nil, errors.Join(context.Cause(running), stop())
	}
	return running, stop, nil
}

// newLogger returns the logger of controller-runtime, too. Every client of controller-runtime logs, and prints a stack
// trace if no logger was set half a minute after the program has started.
func newLogger(to io.Writer) logr.Logger {
	logger := logr.Discard()
	if to != nil {
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&exclusive{to: to})))
	}
	log.SetLogger(logger)
	return logger
}

// exclusive writes for one caller at a time: a logger does not.
type exclusive struct {
	mutex sync.Mutex
	to    io.Writer
}

// Write writes to the writer behind it.
func (e *exclusive) Write(data []byte) (int, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.to.Write(data)
}
