// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller tests the placement controller as a program would use it: on a manager, with a real API server. It has no
// code of its own. The unit tests in placement/controller need no API server.
//
// All tests share one hub. Each test has its own namespace and clusters.
package controller
