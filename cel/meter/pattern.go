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
	// MaxPatternLength is the maximum length of a regular expression in bytes.
	MaxPatternLength = 16 << 10
	// MaxPatternInstructions is the maximum number of instructions of a compiled regular expression. A counted repetition such
	// as a{1000} is short, but has as many instructions as its count. The limit also applies to the sum over all constant
	// regular expressions of a CEL expression.
	MaxPatternInstructions = 20_000
	// maxClasses is the maximum number of Unicode classes in a regular expression. Each class is a table of up to 10 KiB.
	maxClasses = 64
	// maxGroups is the maximum number of groups in a regular expression. During a match, each instruction may store the
	// positions of all groups, even if the caller does not use the groups.
	maxGroups = 32
	// MaxPatternParsing is the maximum estimated time, in nanoseconds, for parsing one regular expression. It is also the
	// maximum for all constant regular expressions of a CEL expression together.
	MaxPatternParsing = 4e6
	// mostFolded is approximately the last Unicode letter that has both cases.
	mostFolded = 0x1e943
	// punctuation has the characters that have a special meaning in regular expressions unless a backslash precedes them.
	punctuation = `.[](){}*+?^$\|-/`
)

// Pattern has upper bounds for the size and the costs of a regular expression.
type Pattern struct {
	// Instructions is the size of the compiled program. Steps is the maximum number of instructions tried per character of a
	// text. Groups is the number of groups in parentheses.
	Instructions, Steps, Groups float64
	// Parsing is the maximum parsing time in nanoseconds. Ranges is the total number of character ranges in all classes.
	Parsing, Ranges float64
}

// pattern is a constant regular expression.
type pattern struct {
	Pattern
	expression *regexp.Regexp
	// characters is the number of characters of the text.
	characters uint64
}

func isMatching(function string) bool {
	return function == "matches" || function == "find" || function == "findAll"
}

// constantPattern compiles the pattern of a call if it is a constant. Otherwise it returns nil.
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

// match makes a call whose pattern is a constant, with the pattern that was compiled in advance.
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

// patternOf returns the size of the pattern in a call. An invalid pattern has the size zero, because the call will report the
// mistake.
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

// PatternError means that a regular expression is too large to compile.
type PatternError struct {
	message string
}

// Error returns a message with the exceeded limit.
func (e *PatternError) Error() string { return e.message }

// PatternOf returns the size of a regular expression without compiling it. If the regular expression is too large, the error is
// a [*PatternError]. Otherwise PatternOf parses it, and a parse error is the error of Go's parser.
func PatternOf(text string) (Pattern, error) {
	if len(text) > MaxPatternLength {
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression has %d bytes, the limit is %d: shorten it", len(text), MaxPatternLength)}
	}
	if classes := classesOf(text); classes > maxClasses {
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression names %d classes of characters, the limit is %d: use fewer classes", classes, maxClasses)}
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
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression has %d groups, the limit is %d: write (?:x) instead of (x)", groups, maxGroups)}
	}
	size := instructionsOf(parsed)
	if size > MaxPatternInstructions {
		return Pattern{}, &PatternError{fmt.Sprintf("the regular expression is compiled to more than %d instructions: repeat less", MaxPatternInstructions)}
	}
	result.Instructions, result.Steps, result.Groups, result.Ranges = size, size, float64(groups), rangesOf(parsed)
	if parsed.Op == syntax.OpLiteral && parsed.Flags&syntax.FoldCase == 0 {
		result.Steps = 1 // A plain text is searched directly.
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
		// A class is one instruction that does a binary search for each character.
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

// parseTime returns an upper bound of the parsing time in nanoseconds. It estimates from the text before parsing, because a
// running parser can't be interrupted. The parser takes superlinear time in three cases:
//
//   - Alternatives with a common prefix are factored prefix by prefix, and each time the rest is traversed again:
//     (.a.a.a|.a.a.b).
//   - The content of a group is copied into the enclosing group: ((((abc)d)e)f).
//   - With the flag (?i), which ignores case, each letter of a class is looked up: [B-\x{1e900}].
//
// The bound also counts characters that have no special meaning because they are quoted or in a class, so it may be too high.
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

// count returns how many characters of text occur in the set of. It skips punctuation after a backslash.
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

// foldsCase reports whether the regular expression may have the flag i, which ignores case.
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

// folded returns an upper bound of the number of letters in all ranges of classes that extend beyond ASCII.
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

// lastOf returns the letter that the text begins with, which may be the end of a range, if it is beyond ASCII. Otherwise it
// returns 0.
func lastOf(text string) rune {
	const bits = 32
	if hex, found := strings.CutPrefix(text, `\x{`); found {
		digits, _, _ := strings.Cut(hex, "}")
		letter, err := strconv.ParseUint(digits, 16, bits)
		if err != nil {
			// The parser will reject the text if this is not a letter.
			return mostFolded
		}
		return rune(min(letter, mostFolded))
	}
	if strings.HasPrefix(text, `\`) {
		return 0o777 // three octal digits or two hexadecimal digits
	}
	if letter, _ := utf8.DecodeRuneInString(text); letter >= utf8.RuneSelf {
		return letter
	}
	return 0
}
