// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// emulateScheme has the page believe that its reader prefers light or dark.
func emulateScheme(scheme string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
}
