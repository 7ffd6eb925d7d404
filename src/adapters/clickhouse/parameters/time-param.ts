/** A parameter in epoch ms, in the type of our tables' times. */
export function timeParam(name: string): string {
  return `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
}
