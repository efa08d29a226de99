// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var paintRule = regexp.MustCompile(`(.*) \{ (fill|stroke): (#[0-9a-f]{6}) \}`)

// TestContrast checks the contrast of texts and lines with their background in light mode and in dark mode, as WCAG 2 requires for
// text (4.5:1) and for graphics (3:1).
func TestContrast(t *testing.T) {
	light, dark, found := strings.Cut(stylesheet(len(ownerFills)), "@media (prefers-color-scheme: dark)")
	require.True(t, found)
	var classes []int
	for _, rules := range []string{light, dark} {
		colors := map[string]string{}
		for _, rule := range paintRule.FindAllStringSubmatch(rules, -1) {
			for class := range strings.SplitSeq(rule[1], ",") {
				colors[rule[2]+strings.TrimPrefix(strings.TrimSpace(class), ".celset ")] = rule[3]
			}
		}
		classes = append(classes, len(colors))
		requireContrast := func(least float64, classes []string, backgrounds ...string) {
			for _, class := range classes {
				for _, background := range backgrounds {
					require.GreaterOrEqual(t, contrast(t, colors[class], colors[background]), least, "%s on %s", class, background)
				}
			}
		}
		requireContrast(4.5, []string{"fill.title", "fill.entry", "fill.caption", "fill.heading", "fill.root"}, "fill.paper")
		boxes := []string{"fill." + freeClass, "fill." + unusableClass, "fill.box." + chosenClass}
		for i := range ownerFills {
			boxes = append(boxes, "fill."+ownerClass(i))
		}
		requireContrast(4.5, []string{"fill.label", "fill.symbol"}, boxes...)
		requireContrast(3, []string{"stroke.link", "stroke.frame", "stroke.box", "stroke." + chosenClass}, "fill.paper")
	}
	require.Equal(t, classes[0], classes[1], "both modes have all colours")
}

// contrast returns the contrast ratio of two colours, from 1 to 21.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance returns the relative luminance of a colour in sRGB, from 0 to 1.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	require.Len(t, color, len("#rrggbb"))
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		c := float64(value) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}
