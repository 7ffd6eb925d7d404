// How much work something is, told by the processor's clock of this thread: a busy machine makes it hardly longer. Comparisons
// are between two of the same run, never with a number of milliseconds.

/** CPU time of this thread in ms, the least of three runs: garbage collection and compilation come and go. */
export function cpuMs(work: () => void): number {
  let least = Number.POSITIVE_INFINITY
  for (let run = 0; run < 3; run++) {
    const before = process.threadCpuUsage()
    work()
    const { user, system } = process.threadCpuUsage(before)
    least = Math.min(least, (user + system) / 1000)
  }
  return least
}
