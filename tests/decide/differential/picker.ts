// Makes choices from one repeatable source of randomness.

export interface Pick {
  chance(probability: number): boolean
  /** Both ends are included. */
  int(from: number, to: number): number
  one<T>(choices: readonly T[]): T
}

export function picker(random: () => number): Pick {
  const int = (from: number, to: number) => from + Math.floor(random() * (to - from + 1))
  return {
    chance: probability => random() < probability,
    int,
    one: choices => choices[int(0, choices.length - 1)]!,
  }
}
