// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deviceattributes tests celset-scheduler with DeviceAttributes objects in a real API server. The package has its own
// control plane, because the CRD is installed while the scheduler runs, and deleted by one of the tests.
package deviceattributes
