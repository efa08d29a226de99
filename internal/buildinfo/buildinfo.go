// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package buildinfo defines the metric celset_build_info, which every program of celset exposes.
package buildinfo

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"
)

// Info describes the build of a program. A field is empty if the go command did not record the value.
type Info struct {
	// Version is the version of celset.
	Version string
	// Kubernetes is the version of the Kubernetes libraries in the program.
	Kubernetes string
	// Commit is the commit of celset.
	Commit string
}

// Register registers the metric celset_build_info, whose value is always 1. If it is already registered, Register does nothing.
func Register(registry prometheus.Registerer, info Info) error {
	gauge := metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "celset_build_info", StabilityLevel: metrics.ALPHA,
		Help: "Always 1. The labels are the version of celset, the version of Kubernetes that the program was built from, and the commit of celset.",
	}, []string{"version", "kubernetes", "commit"})
	// Create the metric explicitly, because a Prometheus registry does not do it, unlike a Kubernetes registry.
	gauge.Create(nil)
	if err := registry.Register(gauge); err != nil {
		if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
			return nil
		}
		return fmt.Errorf("register metric %s: %w", gauge.FQName(), err)
	}
	gauge.WithLabelValues(info.Version, info.Kubernetes, info.Commit).Set(1)
	return nil
}
