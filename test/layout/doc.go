// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout has no code of its own. Its test holds the arrows between the
// packages: who may import whom, directly and behind other imports.
package layout
