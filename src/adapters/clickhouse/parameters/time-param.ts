/** SQL that converts a parameter in epoch ms to the type of our tables' times. */
export function timeParamSql(name: string): string {
  return `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
}
