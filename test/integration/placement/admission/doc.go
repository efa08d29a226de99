// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission tests the webhook for Placements with a real API server that calls it. It has no code of its own. The unit
// tests in placement/admission check the errors and warnings.
package admission
