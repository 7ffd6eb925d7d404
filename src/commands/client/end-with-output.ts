/**
 * Ends the command once its output cannot be written: with exit code 0 when the reader has closed it, as `| head` does,
 * else with 1 and a line on stderr, since a file on a full disk holds only a part.
 */
export function endWithOutput(): void {
  process.stdout.once('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(0)
    process.stderr.write(`pennon: the output could not be written completely: ${message}\n`)
    process.exit(1)
  })
}
