// Gives those who ask their turns, one at a time and in the order in which they ask.

export type InTurn = <Result>(run: () => Promise<Result>) => Promise<Result>

export function createTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return run => {
    const turn = last.then(run)
    // Whoever comes next waits for the end, however it ends; its own caller hears of a failure.
    last = turn.catch(() => {})
    return turn
  }
}
