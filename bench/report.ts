// Prints a figure: the value, its floor from the same run, the ratio and the aim.

export interface Figure {
  readonly name: string
  readonly value: string
  readonly floor?: string
  readonly ratio?: number
  readonly aim?: string
}

export function print({ name, value, floor, ratio, aim }: Figure): void {
  const parts = [name.padEnd(44), value.padEnd(78)]
  if (floor !== undefined) parts.push(`floor ${floor}`.padEnd(20))
  if (ratio !== undefined) parts.push(`${ratio.toFixed(2)} × floor`.padEnd(14))
  if (aim !== undefined) parts.push(`aim ${aim}`)
  console.log(`  ${parts.join(' ').trimEnd()}`)
}

export function micros(value: number): string {
  return `${value.toFixed(1)} µs`
}
