// Parses the Dockerfile into instructions.

import { readFileSync } from 'node:fs'

export interface Instruction {
  readonly name: string
  /** Instructions with continued lines joined, without comments. */
  readonly rest: string
}

export interface ReadDockerfile {
  /** What the image copies from the repository. */
  readonly copiesOfContext: readonly { readonly sources: readonly string[]; readonly target: string }[]
  /** The environment variables of the final image. */
  readonly environment: Readonly<Record<string, string>>
  readonly command: readonly string[]
  readonly healthCommand: readonly string[]
  last(name: string): string
}

export function instructionsOf(text: string): Instruction[] {
  const lines = text.split('\n').filter(line => !/^\s*(#|$)/.test(line))
  const whole = lines.join('\n').replaceAll(/\s*\\\n\s*/g, ' ')
  return whole.split('\n').map(line => {
    const [, name, rest] = /^(\w+)\s+(.*)$/.exec(line)!
    return { name: name!, rest: rest! }
  })
}

export function readDockerfile(): ReadDockerfile {
  const instructions = instructionsOf(readFileSync('Dockerfile', 'utf8'))
  const named = (name: string) => instructions.filter(instruction => instruction.name === name).map(({ rest }) => rest)
  const last = (name: string) => named(name).at(-1) ?? ''
  const pairs = named('ENV').flatMap(rest => rest.split(' ').map(pair => pair.split('=', 2) as [string, string]))
  return {
    copiesOfContext: named('COPY')
      .filter(rest => !rest.startsWith('--from='))
      .map(rest => ({ sources: rest.split(' ').slice(0, -1), target: rest.split(' ').at(-1)! })),
    environment: Object.fromEntries(pairs),
    command: JSON.parse(last('CMD')),
    healthCommand: JSON.parse(/ CMD (\[.*\])$/.exec(last('HEALTHCHECK'))![1]!),
    last,
  }
}
