"""Asks a scoring server in every way that MLflow and pandas have, and prints what it said of each row."""

import json
import sys

import pandas
import requests
from mlflow.pyfunc.scoring_server.client import ScoringServerClient

port, table = sys.argv[1:]
url = f"http://127.0.0.1:{port}/invocations"
frame = pandas.read_csv(table)
plain = frame.astype(object).where(frame.notna(), None)


def post(body, **options):
    answer = requests.post(url, json=body, timeout=60, **options)
    answer.raise_for_status()
    return answer.json()["predictions"]


client = ScoringServerClient("127.0.0.1", int(port))
client.ping()
csv = requests.post(url, data=frame.to_csv(index=False), headers={"Content-Type": "text/csv"}, timeout=60)
refused = requests.post(url, json={"dataframe_split": plain.drop(columns="region").to_dict(orient="split")}, timeout=60)
print(
    json.dumps(
        {
            # As MLflow's own client writes it, with NaN for gaps.
            "scoring_client": client.invoke(frame).get_predictions().iloc[:, 0].tolist(),
            "split": post({"dataframe_split": plain.to_dict(orient="split")}),
            "records": post({"dataframe_records": plain.to_dict(orient="records")}),
            "lists": post({"inputs": plain.values.tolist()}),
            "columns": post({"inputs": plain.to_dict(orient="list")}),
            "csv": csv.json()["predictions"],
            "refused": {"status": refused.status_code, "message": refused.json()["message"]},
        }
    )
)
