// Runs tasks one at a time, in the order in which they are passed.

export type Serialize = <Result>(run: () => Promise<Result>) => Promise<Result>

export function createSerializer(): Serialize {
  let last: Promise<unknown> = Promise.resolve()
  return run => {
    const result = last.then(run)
    // Whoever comes next waits for the end, however it ends; its own caller hears of a failure.
    last = result.catch(() => {})
    return result
  }
}
