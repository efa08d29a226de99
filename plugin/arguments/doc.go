// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arguments decodes the arguments of the plugin, for upstream's plugin too, and combines the arguments of the profiles
// that apply to the whole scheduler.
package arguments
