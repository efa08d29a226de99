// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable makes foreign texts harmless for terminals and logs.
//
// Anyone may write an object or an error message with control characters. A terminal executes them: they move the cursor, change
// colors, or write to the clipboard. This package replaces each such character by its Go escape sequence, which is visible and
// harmless.
//
//	out := printable.NewWriter(os.Stdout)
//	klog.ErrorS(printable.Error(err, 200), "The hub refused the score")
package printable
