// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxPatternParsing is how long a regular expression may take to be parsed, in nanoseconds,
	// and those of an expression that are constants together.
	MaxPatternParsing = 4e6
	// mostFolded is about the last letter that has a form in another case.
	mostFolded = 0x1e943
	// punctuation has a meaning in a regular expression, and none behind a backslash.
	punctuation = `.[](){}*+?^$\|-/`
)

// parseTime is how long a regular expression takes to be parsed at most, in nanoseconds. It can
// be found out only by its text: a parser that has begun does not end before it is done, and
// for three things takes much longer than the text is long.
//
//   - Alternatives that begin alike are taken apart, piece by piece, and what is left of them
//     is gone through again for each piece: (.a.a.a|.a.a.b).
//   - What is in a group is copied into what is around it: ((((abc)d)e)f).
//   - Without regard to case, (?i), each letter of a class is looked up: [B-\x{1e900}].
//
// What it counts may be more than there is, where a character stands for itself: in quotes, or
// in a class.
func parseTime(text string) (nanoseconds float64) {
	const (
		perByte, perPiece                = 100, 7
		perClass, perFoldedClass         = 10e3, 200e3
		perFolded                float64 = 30
	)
	nanoseconds = perByte * float64(len(text))
	class := float64(perClass)
	if foldsCase(text) {
		class = perFoldedClass
		nanoseconds += perFolded * folded(text)
	}
	nanoseconds += class * float64(classesOf(text))
	pieces := "("
	if strings.Contains(text, "|") {
		pieces = `.[](){}*+?^$\`
	}
	return nanoseconds + perPiece*float64(count(text, pieces))*float64(len(text))
}

// count leaves out what stands for itself because of a backslash.
func count(text, of string) (times int) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(punctuation, text[i+1]) >= 0 {
			i++
			continue
		}
		if strings.IndexByte(of, text[i]) >= 0 {
			times++
		}
	}
	return times
}

func classesOf(text string) int { return strings.Count(text, `\p`) + strings.Count(text, `\P`) }

// foldsCase reports whether there may be a flag i.
func foldsCase(text string) bool {
	for {
		_, flags, found := strings.Cut(text, "(?")
		if !found {
			return false
		}
		for i := 0; i < len(flags) && (flags[i] == '-' || flags[i] >= 'A' && flags[i] <= 'Z' || flags[i] >= 'a' && flags[i] <= 'z'); i++ {
			if flags[i] == 'i' {
				return true
			}
		}
		text = flags
	}
}

// folded is how many letters the ranges may have that reach beyond ASCII.
func folded(text string) (letters float64) {
	for {
		_, last, found := strings.Cut(text, "-")
		if !found {
			return letters
		}
		letters += float64(min(lastOf(last), mostFolded))
		text = last
	}
}

// lastOf is the letter that a text begins with, if it may be the last one of a range beyond
// ASCII; else 0.
func lastOf(text string) rune {
	const bits = 32
	if hex, found := strings.CutPrefix(text, `\x{`); found {
		digits, _, _ := strings.Cut(hex, "}")
		letter, err := strconv.ParseUint(digits, 16, bits)
		if err != nil {
			return mostFolded // or it is no letter, and the parser says so
		}
		return rune(min(letter, mostFolded))
	}
	if strings.HasPrefix(text, `\`) {
		return 0o777 // three octal digits, or two hexadecimal ones
	}
	if letter, _ := utf8.DecodeRuneInString(text); letter >= utf8.RuneSelf {
		return letter
	}
	return 0
}
