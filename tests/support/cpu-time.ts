// How much work something is, told by the processor's clock of this thread: a busy machine makes it hardly longer. Comparisons
// are between two pieces of work of the same run, never with a number of milliseconds, and what they look for is many times
// over the bound. What can be counted is counted instead: calls, steps, bytes.

/** The clock moves with the kernel's ticks of up to 10 ms, so that work of less than one may show as none, or as a whole one. */
const clockMs = 20
const runsMax = 5

/** CPU time of this thread in ms, the least of several runs: garbage collection and compilation come and go. */
function leastCpuMs(work: () => void): number {
  return Math.min(...Array.from({ length: runsMax }, () => cpuMs(work)))
}

function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/**
 * Whether work takes at most `times` as long as a reference: true as soon as one of several runs does. Work that is too much
 * has to take more than 200 ms, and many times the bound, for the answer not to depend on the machine.
 */
export function takesAtMost(times: number, work: () => void, reference: () => void): boolean {
  const mostMs = times * leastCpuMs(reference) + clockMs
  for (let run = 0; run < runsMax; run++) if (cpuMs(work) <= mostMs) return true
  return false
}

const growth = 64

/**
 * Whether work on a text 64 times as long takes 64 times as long, give or take four times: what is quadratic takes 4,096 times
 * as long. `work` is given how many times the shortest text to make.
 */
export function isLinear(work: (times: number) => () => void): boolean {
  const [short, long] = [work(1), work(growth)]
  return takesAtMost(4, long, () => {
    for (let run = 0; run < growth; run++) short()
  })
}
