// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/controlplane"
)

const (
	startPage = "docs/getting-started.md"
	patience  = 5 * time.Minute
)

// TestGettingStarted follows docs/getting-started.md on the cluster of "make up". It pastes the lines that "make up" prints,
// saves each YAML block in the file that the page names before it, and runs each block of commands. The output must contain
// each line of the text block after the commands.
func TestGettingStarted(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, startPage))
	require.NoError(t, err)
	all, err := parse(startPage, string(content))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reader := &pageReader{t: t, dir: t.TempDir()}
	lines := strings.Split(string(content), "\n")
	commands := 0
	for i, b := range all {
		switch before := strings.Join(lines[max(0, b.line-4):b.line-1], " "); b.language {
		case "yaml":
			named := saveAs.FindStringSubmatch(before)
			require.NotNil(t, named, "%s: under which name is it to be saved?", b)
			require.NoError(t, os.WriteFile(filepath.Join(reader.dir, named[1]), []byte(b.text), 0o600))
		case "sh":
			commands++
			reader.run(ctx, b, textsAfter(all[i+1:]))
		case "text":
			if strings.HasPrefix(b.text, "export ") {
				reader.exports = startUp(ctx, t)
				require.Equal(t, shapeOf(b.text), shapeOf(reader.exports), "%s: this is not what make up prints", b)
			}
		}
	}
	require.GreaterOrEqual(t, commands, 6)

	// The page also names a file for readers with their own cluster. For that file, the command may answer that nothing fits.
	require.NoError(t, os.Link(filepath.Join(reader.dir, "ring.yaml"), filepath.Join(reader.dir, "claim.yaml")))
	_, own, found := strings.Cut(string(content), "\n## On your own cluster\n")
	require.True(t, found)
	inline := inlineCommand.FindAllStringSubmatch(own, -1)
	require.GreaterOrEqual(t, len(inline), 3)
	for _, command := range inline {
		output, err := reader.shell(ctx, command[1])
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && strings.Contains(command[1], " simulate ") {
			require.Contains(t, output, "node demo-1: no: no set of 4 free devices satisfies constraint ring4")
			continue
		}
		require.NoError(t, err, "%s\n%s", command[1], output)
	}
}

var (
	saveAs        = regexp.MustCompile("(?i)save this\\s+as `([a-z.]+)`")
	inlineCommand = regexp.MustCompile("`(kubectl [^`]+)`")
	// generated matches the random end of a generated object name on the page.
	generated = regexp.MustCompile(`-x5v2k\b`)
	// reads matches commands that only read. The test may repeat them until they print the text on the page.
	reads = regexp.MustCompile(`^kubectl (get|describe|celset) `)
)

// textsAfter returns the text blocks before the next block of commands.
func textsAfter(blocks []block) (texts []string) {
	for _, b := range blocks {
		if b.language == "sh" {
			break
		}
		if b.language == "text" {
			texts = append(texts, strings.Split(strings.TrimRight(b.text, "\n"), "\n")...)
		}
	}
	return texts
}

// shapeOf removes paths, and the spaces before comments, so that the lines on the page can be compared with printed lines.
func shapeOf(exports string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`=/[^:\s]*`).ReplaceAllString(exports, "=PATH")), " ")
}

// startUp runs the program of "make up" until the test ends. It returns the lines that the program tells the user to paste.
func startUp(ctx context.Context, t *testing.T) (exports string) {
	t.Helper()
	binDir, err := controlplane.Build(ctx, "", t.Output(), "devcluster")
	require.NoError(t, err)
	up := exec.Command(filepath.Join(binDir, "devcluster"), "up")
	up.Stderr = t.Output()
	stdout, err := up.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, up.Start())
	t.Cleanup(func() {
		require.NoError(t, up.Process.Signal(syscall.SIGTERM))
		require.NoError(t, up.Wait())
	})
	output := bufio.NewScanner(stdout)
	for output.Scan() {
		line := strings.TrimSpace(output.Text())
		if strings.HasPrefix(line, "export ") {
			exports += line + "\n"
		} else if exports != "" {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return exports
		}
	}
	require.FailNow(t, "make up printed no lines to paste", "%v", output.Err())
	return ""
}

// A pageReader follows the page, with a working directory and a shell.
type pageReader struct {
	t       *testing.T
	dir     string
	exports string
}

// shell runs commands in a shell that has first run the pasted lines.
func (r *pageReader) shell(ctx context.Context, commands string) (string, error) {
	shell := exec.CommandContext(ctx, "bash", "-e", "-c", r.exports+commands)
	shell.Dir = r.dir
	output, err := shell.CombinedOutput()
	return string(output), err
}

// run runs the commands of a block one after the other, and requires that their output contains the texts. It repeats commands
// that only read until the output does, because the scheduler may write an event later.
func (r *pageReader) run(ctx context.Context, b block, texts []string) {
	r.t.Helper()
	require.NotEmpty(r.t, r.exports, "%s: nobody has started the cluster", b)
	var before, last string
	for command := range strings.Lines(b.text) {
		output, err := r.shell(ctx, command)
		require.NoError(r.t, err, "%s: %s\n%s", b, command, output)
		before, last = before+last, output
	}
	commands := strings.Split(strings.TrimSpace(b.text), "\n")
	command := commands[len(commands)-1]
	for {
		missing := missingIn(before+last, texts)
		if missing == "" {
			return
		}
		require.Regexp(r.t, reads, command, "%s: the page says %q, the commands print:\n%s", b, missing, before+last)
		require.NoError(r.t, ctx.Err(), "%s: the page says %q, the commands print:\n%s", b, missing, before+last)
		time.Sleep(200 * time.Millisecond)
		last, _ = r.shell(ctx, command)
	}
}

// missingIn returns the first of lines that output does not contain, or "".
func missingIn(output string, lines []string) string {
	for _, line := range lines {
		pattern := generated.ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(line)), "-[a-z0-9]{5}")
		if !regexp.MustCompile(`(?m)` + pattern).MatchString(output) {
			return line
		}
	}
	return ""
}
