// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission tests the webhook for Placements with a real API server that calls it. It has no code of its own. What the
// webhook refuses, and what it warns of, is tested in placement/admission.
package admission
