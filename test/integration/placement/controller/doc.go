// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller tests the placement controller as a program would use it: on a manager, with a real API server. It has no
// code of its own. What the controller does without an API server is tested in placement/controller.
//
// All tests share one hub. Each test has a namespace and clusters of its own.
package controller
