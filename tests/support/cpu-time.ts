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

/**
 * Whether work on a text `growth` times as long takes at most thrice as many times as long, and a moment: what is quadratic
 * takes far longer. `work` is given how many times the shortest text to make.
 */
export function isLinear(work: (times: number) => () => void, growth = 16): boolean {
  const [short, long] = [work(1), work(growth)]
  const shortMs = cpuMs(() => {
    for (let run = 0; run < growth; run++) short()
  })
  return cpuMs(long) < 3 * shortMs + 20
}
