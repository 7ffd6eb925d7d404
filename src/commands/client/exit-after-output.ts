/**
 * Exits once the output cannot be written: with code 0 if its reader, such as `| head`, has closed it; otherwise with code
 * 1 and a line on stderr, since a file on a full disk is incomplete.
 */
export function exitAfterOutput(): void {
  process.stdout.once('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(0)
    process.stderr.write(`pennon: the output could not be written completely: ${message}\n`)
    process.exit(1)
  })
}
