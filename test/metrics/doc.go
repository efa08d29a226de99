// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics has no code of its own. Its tests compare what programs register
// as metrics with what is written about them: docs/METRICS.md, the dashboards in
// manifests/dashboards, and the alerts in manifests/monitoring, which Prometheus' own promtool
// checks and tests, with the unit tests in testdata.
//
// A program with metrics has an entry in components: a function that makes each time
// series once. What it registers must be on the page, under a heading with its name.
package metrics
