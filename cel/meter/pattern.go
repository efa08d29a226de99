// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// MaxPatternLength is the longest regular expression that is compiled, in bytes.
	MaxPatternLength = 16 << 10
	// MaxPatternInstructions is the largest program that one is compiled to: a counted
	// repetition takes a few characters and as many instructions as it says. Those of an
	// expression that are constants have no more together.
	MaxPatternInstructions = 20_000
	// maxClasses is how many classes of Unicode characters a regular expression may name: each
	// is a table of up to 10 KiB.
	maxClasses = 64
	// maxGroups is how many groups a regular expression may have. While a text is matched, each
	// instruction may keep where each group began and ended, also if nobody asks for that.
	maxGroups = 32
	// MaxPatternParsing is how long a regular expression may take to be parsed, in nanoseconds,
	// and those of an expression that are constants together.
	MaxPatternParsing = 4e6
	// mostFolded is about the last letter that has a form in another case.
	mostFolded = 0x1e943
	// punctuation has a meaning in a regular expression, and none behind a backslash.
	punctuation = `.[](){}*+?^$\|-/`
)

// Pattern says how large a regular expression is.
type Pattern struct {
	// Instructions is the size of its program. Steps is how many of them may be tried for
	// each character. Groups is how many groups in parentheses it has.
	Instructions, Steps, Groups float64
	// Parsing is how long it takes to be parsed at most, in nanoseconds. Ranges is how many
	// ranges of characters its classes have together.
	Parsing, Ranges float64
}

// pattern is a regular expression that is a constant.
type pattern struct {
	Pattern
	expression *regexp.Regexp
	// characters is how many its text has.
	characters uint64
}

func isMatching(function string) bool {
	return function == "matches" || function == "find" || function == "findAll"
}

// constantPattern compiles the pattern of a call if it is a constant. nil if it is none.
func constantPattern(of interpreter.InterpretableCall) (*pattern, error) {
	if !isMatching(of.Function()) || len(of.Args()) < 2 {
		return nil, nil
	}
	literal, ok := of.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return nil, nil
	}
	text, ok := literal.Value().(types.String)
	if !ok {
		return nil, nil
	}
	size, err := PatternOf(string(text))
	if err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(string(text))
	if err != nil {
		return nil, err
	}
	return &pattern{size, compiled, uint64(utf8.RuneCountInString(string(text)))}, nil
}

// match makes a call with a pattern.
func match(of *call, values []ref.Val) ref.Val {
	text, ok := values[0].(types.String)
	if !ok {
		return types.LabelErrNode(of.ID(), types.MaybeNoSuchOverloadErr(values[0]))
	}
	expression := of.pattern.expression
	switch of.Function() {
	case "matches":
		return types.Bool(expression.MatchString(string(text)))
	case "find":
		return types.String(expression.FindString(string(text)))
	default:
		count := types.Int(-1)
		if len(values) > 2 {
			if count, ok = values[2].(types.Int); !ok {
				return types.LabelErrNode(of.ID(), types.MaybeNoSuchOverloadErr(values[2]))
			}
		}
		return types.NewStringList(types.DefaultTypeAdapter, expression.FindAllString(string(text), int(count)))
	}
}

// patternOf is the pattern of a call. A computed one that can't be compiled has no size: the
// call will say what is wrong with it.
func (c *call) patternOf(values []ref.Val) (of Pattern, compiled bool) {
	if c.pattern != nil {
		return c.pattern.Pattern, true
	}
	text, ok := values[1].(types.String)
	if !ok {
		return Pattern{}, false
	}
	of, err := PatternOf(string(text))
	if _, isTooLarge := errors.AsType[*PatternError](err); isTooLarge {
		return Pattern{Instructions: noLimit}, false
	}
	return of, false
}

// PatternError says that a regular expression is too large to be compiled.
type PatternError struct {
	message string
}

// Error says by how much.
func (e *PatternError) Error() string { return e.message }

// PatternOf returns how large a regular expression is once it is compiled, without compiling
// it. An error says that it is too large ([*PatternError]), or what is wrong with it; what is
// wrong is found out by parsing it.
func PatternOf(text string) (Pattern, error) {
	if len(text) > MaxPatternLength {
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression has %d bytes, the limit is %d", len(text), MaxPatternLength)}
	}
	if classes := classesOf(text); classes > maxClasses {
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression names %d classes of characters, the limit is %d", classes, maxClasses)}
	}
	result := Pattern{Parsing: parseTime(text)}
	if result.Parsing > MaxPatternParsing {
		return Pattern{}, &PatternError{"the regular expression takes too long to be parsed: write shorter alternatives with |, or smaller ranges of characters without regard to case, (?i)"}
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return result, err
	}
	groups := parsed.MaxCap()
	if groups > maxGroups {
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression has %d groups, the limit is %d: write (?:x) in place of (x)", groups, maxGroups)}
	}
	size := instructionsOf(parsed)
	if size > MaxPatternInstructions {
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression is compiled to more than %d instructions: repeat less", MaxPatternInstructions)}
	}
	result.Instructions, result.Steps, result.Groups, result.Ranges = size, size, float64(groups), rangesOf(parsed)
	if parsed.Op == syntax.OpLiteral && parsed.Flags&syntax.FoldCase == 0 {
		result.Steps = 1 // it is looked for as a text is
	}
	return result, nil
}

func instructionsOf(e *syntax.Regexp) float64 {
	var sum float64
	for _, sub := range e.Sub {
		sum += instructionsOf(sub)
	}
	switch e.Op {
	case syntax.OpLiteral:
		return float64(len(e.Rune))
	case syntax.OpCharClass:
		// A class is one instruction, and searched for each character.
		return 1 + math.Log2(float64(len(e.Rune)+1))/4
	case syntax.OpRepeat:
		times := float64(max(e.Min, e.Max))
		if e.Max < 0 {
			times = float64(e.Min) + 1
		}
		return max(1, times) * (sum + 1)
	case syntax.OpCapture:
		return sum + 2
	default:
		return sum + float64(len(e.Sub)) + 1
	}
}

func rangesOf(e *syntax.Regexp) float64 {
	sum := float64(len(e.Rune)) / 2
	for _, sub := range e.Sub {
		sum += rangesOf(sub)
	}
	return sum
}

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
