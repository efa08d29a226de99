// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package buildinfo defines the metric celset_build_info, which each program of celset shows.
package buildinfo

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"
)

// Info describes what a program was built from. A field is empty if the go command did not record it.
type Info struct {
	// Version is the version of celset.
	Version string
	// Kubernetes is the version of Kubernetes whose libraries the program has.
	Kubernetes string
	// Commit is the commit of celset.
	Commit string
}

// Register registers the metric celset_build_info, whose value is always 1. If the registry has the metric already, Register
// does nothing.
func Register(registry prometheus.Registerer, info Info) error {
	gauge := metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "celset_build_info", StabilityLevel: metrics.ALPHA,
		Help: "Always 1. The labels are the version of celset, that of Kubernetes which the program was built from, and the commit of celset.",
	}, []string{"version", "kubernetes", "commit"})
	// A registry of Prometheus does not create metrics, as one of Kubernetes does.
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
