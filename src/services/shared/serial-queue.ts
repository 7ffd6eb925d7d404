// Runs tasks one at a time, in the order in which they are passed.

export type Serialize = <Result>(run: () => Promise<Result>) => Promise<Result>

export function createSerialQueue(): Serialize {
  let last: Promise<unknown> = Promise.resolve()
  return run => {
    const result = last.then(run)
    // The next task waits for the end of this one, successful or not; a failure goes to the caller of this task.
    last = result.catch(() => {})
    return result
  }
}
