/**
 * What every process of ours starts Node with. New objects get 8 MiB, as in `bin/pennon`; 32, the usual of a large machine,
 * is 50 MiB more in a busy process.
 */
export const nodeOptions: readonly string[] = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8']
