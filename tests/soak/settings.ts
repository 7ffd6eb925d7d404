import { testSeed } from '../support/seeded-random.ts'

/** A number from the environment, such as the size of the run. */
export function numberOf(name: string, usual: number): number {
  return Number(process.env[name] ?? usual)
}

/** The seed of the run, printed so that SEED can repeat it. */
export function printedSeed(): number {
  const seed = testSeed()
  console.log(`SEED=${seed}`)
  return seed
}
