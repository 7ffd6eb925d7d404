// `pennon config`: prints every setting with its value and origin.

import { describeConfig } from '#config.ts'
import { readConfigOrRefuse } from './refuse.ts'

export function showConfig(options: { json?: boolean }): void {
  const lines = describeConfig(process.env)
  if (options.json) {
    console.log(JSON.stringify(lines, null, 2))
  } else {
    const width = Math.max(...lines.map(line => line.variable.length))
    for (const { variable, value, origin, meaning } of lines) {
      console.log(
        `${variable.padEnd(width)}  ${value === '' ? '–' : value}${origin === 'environment' ? '  (from the environment)' : ''}`,
      )
      console.log(`${' '.repeat(width)}  ${meaning}`)
    }
  }
  readConfigOrRefuse()
}
