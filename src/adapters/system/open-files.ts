// How many files, connections among them, this process may have open.

/** The limit that holds, which Node has raised as far as it may; null when there is no limit. */
export function readOpenFilesMax(): number | null {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean }
  const { excludeNetwork } = report
  // Names of interfaces are looked up otherwise, which may take seconds.
  report.excludeNetwork = true
  try {
    const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft: number | string } } }
    const soft = userLimits?.open_files?.soft
    return typeof soft === 'number' ? soft : null
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}
