// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page has tests of the web page about devices, and no code of its own. The tests open the page in Chromium, with the
// command serve and as the playground.
package page
