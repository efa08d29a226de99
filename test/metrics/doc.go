// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics has no code of its own. Its tests compare the registered metrics of programs with their documentation:
// docs/METRICS.md, the dashboards in manifests/dashboards, and the alerts in manifests/monitoring. Prometheus' promtool checks
// and tests the alerts with the unit tests in testdata.
//
// Each program with metrics needs an entry in components, with a function that creates each time series once. The page must
// describe the registered metrics under a heading with the program's name.
package metrics
