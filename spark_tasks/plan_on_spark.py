"""The main file for ``spark-submit``; in the planner's image ``/opt/regent/plan_on_spark.py``."""

from regent_rebalance.spark_job import main

if __name__ == "__main__":
    main(prog_name="plan_on_spark.py")
