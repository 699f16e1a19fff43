// Command check reads a compose file as Docker Compose does, by its own library, and prints what is
// wrong: against the schema, without a variable that has to be given, or of one part with another.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := read(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func read(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithOsEnv)
	if err != nil {
		return err
	}
	_, err = options.LoadProject(context.Background())
	return err
}
