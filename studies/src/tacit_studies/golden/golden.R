# Golden numbers by pROC and rms. Called by tacit_studies.golden.records:
#   Rscript golden.R scores asah OUT.csv          the distorted scores of the aSAH model
#   Rscript golden.R figures IN.csv OUT.json      figures of the columns score and label
suppressMessages({
  library(pROC)
  library(rms)
})

distorted <- function(model) plogis(0.3 + 0.8 * predict(model))

asah_scores <- function(file) {
  data(aSAH, package = "pROC", envir = environment())
  control <- glm.control(epsilon = 1e-14, maxit = 100)
  model <- glm(outcome == "Poor" ~ s100b + wfns + age, data = aSAH, family = binomial,
               control = control)
  scores <- data.frame(score = sprintf("%.17g", distorted(model)),
                       label = as.integer(aSAH$outcome == "Poor"))
  write.csv(scores, file, row.names = FALSE, quote = FALSE)
}

figures <- function(from, to) {
  records <- read.csv(from, colClasses = c("numeric", "integer"))
  curve <- roc(records$label, records$score, quiet = TRUE, direction = "<", levels = c(0, 1))
  interval <- ci.auc(curve, method = "delong")
  smooth <- val.prob(records$score, records$label, pl = FALSE)
  partial <- auc(curve, partial.auc = c(1, 0.9), partial.auc.focus = "specificity")
  made <- c(
    records = nrow(records),
    positives = sum(records$label),
    auc = as.numeric(auc(curve)),
    delong_low = interval[1],
    delong_high = interval[3],
    partial_auc = as.numeric(partial),
    brier = smooth[["Brier"]],
    intercept = smooth[["Intercept"]],
    slope = smooth[["Slope"]],
    emax = smooth[["Emax"]],
    e90 = smooth[["E90"]],
    eavg = smooth[["Eavg"]]
  )
  lines <- sprintf('  "%s": %.17g', names(made), made)
  versions <- sprintf('  "%s": "%s"', c("R", "pROC", "rms"),
                      c(as.character(getRversion()), as.character(packageVersion("pROC")),
                        as.character(packageVersion("rms"))))
  writeLines(c("{", paste(c(versions, lines), collapse = ",\n"), "}"), to)
}

given <- commandArgs(trailingOnly = TRUE)
if (given[1] == "scores") asah_scores(given[3]) else figures(given[2], given[3])
